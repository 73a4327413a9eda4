"""Users of the console: who they are, what their roles allow, how they sign in, their sessions."""
