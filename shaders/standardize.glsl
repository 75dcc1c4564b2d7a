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
// Uses the moments of each row (moments.glsl). Kind 0: the elements with mean 0 and variance 1, scaled and shifted.
// Kind 1: the mean. Kind 2: the factor that makes the variance 1.
float element(int o) {
    int row = kind == 0 ? o / size : o;
    float mean = S(row * 2), factor = 1.0 / sqrt(S(row * 2 + 1) / float(size) + epsilon);
    if (kind != 0) return kind == 1 ? mean : factor;
    float y = (X(o) - mean) * factor * W(o / scale.x % scale.y);
    return biased == 1 ? y + B(o / shift.x % shift.y) : y;
}
