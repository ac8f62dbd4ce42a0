"""The web view (`reverie web`): what fills a window, what it cost, what is remembered, what dreams change."""
