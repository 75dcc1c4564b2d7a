// What the shaders that fill a tensor share: where an element lies, and its value. BYTES says that elements are bytes,
// and CONVERTS that the brightness of colours is converted. Divisions take long: three are enough for a texel where the
// innermost dims are channels, columns and rows (TOGETHER, the number of channels: 3 or 4), or columns, rows and channels
// (PLANAR). With ONE_ITEM a strip of texels lies in one picture of a batch, for which the shader defines enter(item).
ivec4 place_of(int o) { // column, row, channel, picture
#if defined(TOGETHER)
    int pixel = o / TOGETHER, row = pixel / width, item = row / height;
    return ivec4(pixel - row * width, row - item * height, o - pixel * TOGETHER, item);
#elif defined(PLANAR)
    int row = o / width, plane = row / height, item = plane / channels;
    return ivec4(o - row * width, row - plane * height, plane - item * channels, item);
#else
    return ivec4(o / steps.x % width, o / steps.y % height, o / steps.z % channels, o / steps.w % items);
#endif
}
bool in_box(ivec2 at) { return all(greaterThanEqual(at, box.xy)) && all(lessThan(at, box.xy + box.zw)); }
O_TYPE value_of(vec4 color, int c) { // of a channel
    int source = swizzle[c];
    float value = color[source];
#ifdef CONVERTS
    if (source < 3) value = converted(value, CONVERTS);
#endif
    value = (value - mean[c]) * factor[c];
#ifdef BYTES
    float whole = roundEven(value * 255.0 + lowest);
    return whole > lowest ? int(min(whole, lowest + 255.0)) : int(lowest); // the lowest stands for NaN, too
#else
    return value;
#endif
}
vec4 color_at(ivec4 place);
#ifdef ONE_ITEM
void enter(int item);
#endif
#if defined(TOGETHER)
ivec4 pixel_after(ivec4 at) {
    if (at.x + 1 < width) return at + ivec4(1, 0, 0, 0);
    return at.y + 1 < height ? ivec4(0, at.y + 1, at.zw) : ivec4(0, 0, at.z, at.w + 1);
}
O_VECTOR values_of(vec4 color) {
    O_TYPE last = O_TYPE(0);
#if TOGETHER == 4
    last = value_of(color, 3);
#endif
    return O_VECTOR(value_of(color, 0), value_of(color, 1), value_of(color, 2), last);
}
O_VECTOR next_texel(inout ivec4 place) {
    O_VECTOR here = values_of(color_at(place));
    int c = place.z;
    place = pixel_after(place);
#if TOGETHER == 4
    return here;
#else
    // Four elements lie in two pixels. Each is sampled once.
    O_VECTOR next = values_of(color_at(place));
    if (c == 2) place = pixel_after(place);
    place.z = c == 2 ? 0 : c + 1;
    return c == 0 ? O_VECTOR(here.xyz, next.x) : c == 1 ? O_VECTOR(here.yz, next.xy) : O_VECTOR(here.z, next.xyz);
#endif
}
#elif defined(PLANAR)
ivec4 element_after(ivec4 at) {
    if (at.x + 1 < width) return at + ivec4(1, 0, 0, 0);
    if (at.y + 1 < height) return ivec4(0, at.y + 1, at.zw);
    return at.z + 1 < channels ? ivec4(0, 0, at.z + 1, at.w) : ivec4(0, 0, 0, at.w + 1);
}
O_TYPE next_value(inout ivec4 place) {
    O_TYPE value = value_of(color_at(place), place.z);
    place = element_after(place);
    return value;
}
O_VECTOR next_texel(inout ivec4 place) {
    O_VECTOR result;
    result.x = next_value(place);
    result.y = next_value(place);
    result.z = next_value(place);
    result.w = next_value(place);
    return result;
}
#else
O_TYPE element(int o) {
    ivec4 place = place_of(o);
    return value_of(color_at(place), place.z);
}
#endif
#if defined(STRIP)
void strip(int first, out O_VECTOR result[TEXELS]) {
    ivec4 place = place_of(4 * first);
    enter(place.w);
    int end = min((O_size + 3) / 4, first + TEXELS);
    result[0] = next_texel(place); // before the loop, so that parameters are read once
    for (int t = first + 1; t < end; ++t) result[t - first] = next_texel(place); // compilers leave such a loop alone
}
#elif defined(TEXEL)
O_VECTOR texel(int t) {
    ivec4 place = place_of(4 * t);
    return next_texel(place);
}
#endif
