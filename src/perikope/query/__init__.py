"""What does the user look for, in the terms of the index?"""
