//@ input X
//@ param int channels
//@ param int blocks
//@ param int pixels
//@ param int groups
//@ unit texel
// Four channels of one pixel, from as many groups: channel k of each group is followed by channel k of the next group.
O_VECTOR texel(int t) {
    int rest = t / pixels, n = rest / blocks, size = channels / groups;
    int pixel = t - rest * pixels, first = n * blocks, channel = (rest - first) * 4;
    O_VECTOR result = O_VECTOR(0);
    for (int k = 0; k < 4; ++k) {
        int within = (channel + k) / groups, source = (channel + k - within * groups) * size + within;
        result[k] = X(((first + (source >> 2)) * pixels + pixel) * 4 + (source & 3));
    }
    return result;
}
