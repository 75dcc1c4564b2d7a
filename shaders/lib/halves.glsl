// The nearest halves, as floats. Some drivers would cut the other bits off, and write the largest half in place of a
// larger number.
vec4 nearest_halves(vec4 value) {
    uvec4 bits = floatBitsToUint(value);
    vec4 nearest = uintBitsToFloat((bits + 0xFFFu + (bits >> 13 & 1u)) & ~0x1FFFu);
    return mix(value * uintBitsToFloat(0x7F800000u), nearest, lessThan(abs(value), vec4(65520.0)));
}
#if __VERSION__ >= 420
// Two halves in a word, as buffers hold them.
uint words_of(vec2 value) { return packHalf2x16(nearest_halves(value.xyxy).xy); }
uvec2 words_of(vec4 value) {
    vec4 nearest = nearest_halves(value);
    return uvec2(packHalf2x16(nearest.xy), packHalf2x16(nearest.zw));
}
#endif
