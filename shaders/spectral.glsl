//@ input X
//@ input T
//@ input W
//@ param int size
//@ param int inner
//@ param int parts
//@ param int frames
//@ param int step
//@ param int length
//@ param int available
//@ param int bins
//@ param int output_parts
//@ param int mirrored
//@ param int windowed
//@ param int inverse
//@ long
// O[outer, frame, bin, inner, part] = the sum over samples n of x[n] * exp(-2 pi i * bin * n / length); of the inverse, with the
// other sign and divided by the length.
// The table T holds the cosine and the sine of each fraction of a turn. Mirrored input has half of the frequencies: each but the
// first and the middle one stands for two.
float element(int o) {
    int part = o % output_parts, rest = o / output_parts;
    int i = rest % inner;
    rest /= inner;
    int bin = rest % bins;
    rest /= bins;
    int at = ((rest / frames * size + rest % frames * step) * inner + i) * parts, turn = 0;
    float total = 0.0;
    for (int n = 0; n < available; ++n) {
        vec2 x = vec2(X(at), parts == 2 ? X(at + 1) : 0.0);
        if (windowed == 1) x *= W(n);
        if (mirrored == 1 && n > 0 && 2 * n != length) x *= 2.0;
        float c = T(2 * turn), s = inverse == 1 ? T(2 * turn + 1) : -T(2 * turn + 1);
        total += part == 0 ? x.x * c - x.y * s : x.x * s + x.y * c;
        at += inner * parts;
        turn += bin;
        if (turn >= length) turn -= length;
    }
    return inverse == 1 ? total / float(length) : total;
}
