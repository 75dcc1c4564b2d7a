//@ input X
//@ param int channels
//@ param int blocks
//@ param int pixels
// One channel of a pixel from its block.
O_TYPE element(int o) {
    int plane = o / pixels, n = plane / channels;
    int channel = plane - n * channels;
    return X(((n * blocks + (channel >> 2)) * pixels + o - plane * pixels) * 4 + (channel & 3));
}
