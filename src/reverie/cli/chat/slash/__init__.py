"""The slash commands of the chat, by what they are about."""
