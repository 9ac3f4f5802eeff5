"""How is a collection kept so that a thousand documents can be looked into at once?"""
