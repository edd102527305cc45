"""What all rooms share: checks of user data, arrays, files, text, scikit-learn's private names."""
