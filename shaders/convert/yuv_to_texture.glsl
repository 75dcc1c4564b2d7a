//@ texture Y
//@ texture U
//@ texture V
//@ param ivec2 size
//@ param ivec2 chroma_size
//@ param vec2 ratio
//@ param vec2 siting
//@ param ivec4 orientation
//@ param vec4 red
//@ param vec4 green
//@ param vec4 blue
// A pixel of a picture from the planes of a frame. SEMIPLANAR: U holds U and V. PACKED: Y holds Y U Y V. Chroma is
// interpolated from the four samples around the pixel. Planes may be wider than the frame.
float luma_at(ivec2 at) {
#ifdef PACKED
    vec4 pair = texelFetch(Y, ivec2(at.x / 2, at.y), 0);
    return at.x % 2 == 0 ? pair.r : pair.b;
#else
    return texelFetch(Y, at, 0).r;
#endif
}
vec2 chroma_at(ivec2 at) {
    at = min(max(at, ivec2(0)), chroma_size - 1);
#ifdef PACKED
    return texelFetch(Y, at, 0).ga;
#elif defined(SEMIPLANAR)
    return texelFetch(U, at, 0).rg;
#else
    return vec2(texelFetch(U, at, 0).r, texelFetch(V, at, 0).r);
#endif
}
vec4 color(ivec2 pixel) {
    ivec2 at = orientation.z == 1 ? pixel.yx : pixel;
    if (orientation.x == 1) at.x = size.x - 1 - at.x;
    if (orientation.y == 1) at.y = size.y - 1 - at.y;
    vec2 place = (vec2(at) + 0.5) * ratio + siting - 0.5;
    ivec2 low = ivec2(floor(place));
    vec2 part = place - floor(place);
    vec2 chroma = mix(mix(chroma_at(low), chroma_at(low + ivec2(1, 0)), part.x),
                      mix(chroma_at(low + ivec2(0, 1)), chroma_at(low + 1), part.x), part.y);
    vec4 samples = vec4(luma_at(at), chroma, 1.0);
    vec3 rgb = vec3(dot(red, samples), dot(green, samples), dot(blue, samples));
    return vec4(min(max(rgb, vec3(0.0)), vec3(1.0)), 1.0);
}
