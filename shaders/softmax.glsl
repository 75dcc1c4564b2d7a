//@ input X texels
//@ input S texels
//@ param int size
//@ param int inner
//@ param int rows
//@ param int logarithm
//@ unit texel
// The softmax of each row, computed from its largest element and its sum of exponentials (norm.glsl).
vec4 texel(int t) {
    int rest = t * 4 / inner, i = t * 4 - rest * inner, outer = rest / size, at = rest - outer * size;
    vec4 largest, total, x = X_texel(t);
    for (int k = 0; k < 4; ++k) {
        int row = min(outer * inner + i, rows - 1);
        vec4 two = S_texel(row >> 1);
        largest[k] = (row & 1) == 0 ? two.x : two.z;
        total[k] = (row & 1) == 0 ? two.y : two.w;
        bool ends = ++i == inner; // where the elements at this place of the rows end
        i = ends ? 0 : i;
        at += ends ? 1 : 0;
        outer += at == size ? 1 : 0;
        at = at == size ? 0 : at;
    }
    return logarithm == 1 ? x - largest - log(total) : exp(x - largest) / total;
}
