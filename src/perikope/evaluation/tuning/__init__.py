"""Which values of parameters rank training topics best?"""
