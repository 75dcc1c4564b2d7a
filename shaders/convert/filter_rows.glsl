//@ input X texels
//@ input F texels
//@ param int width
//@ param int taps
//@ param int first_row
//@ unit texel
// Filters the rows that filter_columns wrote. A texel is a colour. F has for each row a texel with the first that it
// reads, and texels of four weights.
vec4 texel(int t) {
    int y = t / width, x = t - y * width, at = y * (1 + taps / 4), first = int(F_texel(at).x) - first_row;
    vec4 sum = vec4(0.0);
    for (int k = 0; k < taps; k += 4) {
        vec4 weights = F_texel(at + 1 + k / 4);
        for (int n = 0; n < 4; ++n) // rows that weigh nothing may lie outside
            if (weights[n] != 0.0) sum += weights[n] * X_texel((first + k + n) * width + x);
    }
    return sum;
}
