"""A model or a script over all pictures of a video or a folder, without a frame loop that hurries."""
