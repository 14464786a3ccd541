"""The server: the verbs of a Lab over REST and MCP, as jobs that clients submit and follow."""
