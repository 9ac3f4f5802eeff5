"""Text analysis: words, terms and sentences, in many languages."""
