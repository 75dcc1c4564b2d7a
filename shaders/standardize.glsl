//@ input X
//@ input S
//@ input W
//@ input B
//@ param int size
//@ param float epsilon
//@ param ivec2 scale
//@ param ivec2 shift
//@ param int biased
//@ param int kind
// From each row's moments (moments.glsl) to its elements without mean, of variance 1, scaled and shifted (kind 0); to the mean
// itself (1), and to what it was multiplied by (2).
float element(int o) {
    int row = kind == 0 ? o / size : o;
    float mean = S(row * 2), factor = 1.0 / sqrt(S(row * 2 + 1) / float(size) + epsilon);
    if (kind != 0) return kind == 1 ? mean : factor;
    float y = (X(o) - mean) * factor * W(o / scale.x % scale.y);
    return biased == 1 ? y + B(o / shift.x % shift.y) : y;
}
