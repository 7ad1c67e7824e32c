"""One form for each dot, convolution and layout."""
