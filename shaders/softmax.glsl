//@ input X
//@ input S
//@ param int size
//@ param int inner
//@ param int logarithm
// The softmax of each row, computed from its largest element and its sum of exponentials (norm.glsl).
#define TEXEL
vec4 texel(int t) {
    ivec4 o = min(t * 4 + ivec4(0, 1, 2, 3), ivec4(O_size - 1)), plane = o / inner;
    ivec4 row = 2 * (plane / size * inner + o - plane * inner);
    vec4 largest = S_at(row), total = S_at(row + 1), x = X_texel(t);
    return logarithm == 1 ? x - largest - log(total) : exp(x - largest) / total;
}
