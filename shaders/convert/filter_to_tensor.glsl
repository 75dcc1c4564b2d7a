//@ unit element, texel if TOGETHER, texel if PLANAR
//@ input X texels
//@ param ivec4 box
//@ param vec4 padding
//@ param ivec4 swizzle
//@ param vec4 mean
//@ param vec4 factor
//@ param int channels
//@ param int height
//@ param int width
//@ param int stride
//@ param int items
//@ param ivec4 steps
//@ param float lowest
//@ include srgb
//@ include picture
// An element of a picture that filter_columns and filter_rows have made, of `stride` texels a row, in a letterbox.
vec4 color_at(ivec4 place) {
    ivec2 at = place.xy - box.xy;
    return in_box(place.xy) ? X_texel(at.y * stride + at.x) : padding;
}
