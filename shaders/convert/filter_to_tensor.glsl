//@ input X texels
//@ input F
//@ param int taps
//@ param int first_row
//@ param ivec4 box
//@ param vec4 padding
//@ param ivec4 swizzle
//@ param vec4 mean
//@ param vec4 factor
//@ param int channels
//@ param int height
//@ param int width
//@ param ivec4 steps
//@ param int color_conversion
//@ param float lowest
//@ include srgb
//@ include picture
// Filters the rows that filter_columns wrote to the height of the box, and writes elements.
O_TYPE element(int o) {
    ivec3 p = place_of(o);
    vec4 color = padding;
    if (in_box(p)) {
        int at = (p.y - box.y) * (taps + 1), first = int(F(at)) - first_row;
        color = vec4(0.0);
        for (int k = 0; k < taps; ++k) {
            float weight = F(at + 1 + k);
            if (weight != 0.0) color += weight * X_texel((first + k) * box.z + p.x - box.x); // others may lie outside
        }
    }
    return element_of(color, p.z);
}
