//@ input X
//@ param int channels
//@ param int blocks
//@ param int pixels
//@ unit texel
// One channel of four pixels from their blocks.
O_VECTOR texel(int t) {
    O_VECTOR result;
    int o = min(t * 4, O_size - 1), plane = o / pixels, pixel = o - plane * pixels;
    for (int k = 0; k < 4; ++k) {
        int n = plane / channels, channel = plane - n * channels;
        result[k] = X(((n * blocks + (channel >> 2)) * pixels + pixel) * 4 + (channel & 3));
        if (++pixel == pixels) {
            pixel = 0;
            plane = min(plane + 1, O_size / pixels - 1);
        }
    }
    return result;
}
