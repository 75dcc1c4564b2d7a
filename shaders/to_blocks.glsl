//@ input X
//@ param int channels
//@ param int blocks
//@ param int pixels
//@ unit texel
// Four channels of one pixel from their planes; zeros fill up the last block.
O_VECTOR texel(int t) {
    int rest = t / pixels, n = rest / blocks;
    int channel = (rest - n * blocks) * 4;
    int at = (n * channels + channel) * pixels + t - rest * pixels;
    O_VECTOR result = O_VECTOR(0);
    for (int k = 0; k < 4; ++k)
        if (channel + k < channels) result[k] = X(at + k * pixels);
    return result;
}
