"""What is a word, and a sentence, in each language?"""
