"""The protocols in which agents talk with a model, one module each.

Every module has the same three functions: `read` takes a request apart into what matters to a
script, `answer` is the reply as one JSON document, `stream` is the same reply in pieces, as the
bytes that go over the wire. None of them knows of scripts, tools or sockets.
"""
