"""HLO text: lexer, parser, printer."""
