// What the shaders that fill a tensor share: where an element lies, and its value. BYTES says that elements are bytes.
ivec3 place_of(int o) { // column, row, channel
    return ivec3(o / steps.x % width, o / steps.y % height, o / steps.z % channels);
}
bool in_box(ivec3 at) { return all(greaterThanEqual(at.xy, box.xy)) && all(lessThan(at.xy, box.xy + box.zw)); }
O_TYPE element_of(vec4 color, int c) {
    int source = swizzle[c];
    float value = source < 3 ? converted(color[source], color_conversion) : color[source];
    value = (value - mean[c]) * factor[c];
#ifdef BYTES
    float whole = roundEven(value * 255.0 + lowest);
    return whole > lowest ? int(min(whole, lowest + 255.0)) : int(lowest); // the lowest stands for NaN, too
#else
    return value;
#endif
}
