// A letter of the page: place in ems, glyph, when it came, and whose it is.
uniform sampler2D table;  // of each glyph: its left edge in the atlas, 0, and its width, in pixels
uniform sampler2D atlas;
uniform vec2 size;
uniform float scroll;
uniform float time;
uniform vec2 beam;
in vec2 place;
in vec3 letter;  // glyph, when it came, voice: 0 asks and 1 answers
out vec2 texel;
out vec4 ink;

const float EM = 64.0, ROW = 88.0, PAD = 6.0, SPACING = 1.4;

void main() {
    vec2 corner = vec2(gl_VertexID & 1, gl_VertexID >> 1);
    vec4 glyph = texelFetch(table, ivec2(int(letter.x + 0.5), 0), 0);
    float unit = min(size.y, size.x * 9.0 / 16.0), em = 0.049 * unit;
    vec2 start = vec2(0.06 * size.x, 0.56 * size.y);  // of the last line
    vec2 pixel = start + em * vec2(place.x - PAD / EM, (place.y - scroll) * SPACING - 1.0);
    vec2 middle = vec2(pixel.x, size.y - pixel.y) / size.y;
    pixel += em * corner * vec2(glyph.z, ROW) / EM;
    texel = (vec2(glyph.x, 0.0) + corner * vec2(glyph.z, ROW)) / vec2(textureSize(atlas, 0));
    float fresh = exp(-3.0 * max(0.0, time - letter.y));
    vec3 warm = mix(vec3(1.0, 0.86, 0.60), vec3(1.0, 0.97, 0.88), fresh);
    vec3 color = mix(vec3(0.62, 0.82, 1.0), warm, letter.z);
    float light = 0.82 + 0.35 * fresh + 1.1 * beam_at(middle, size.x / size.y, beam);
    float above = smoothstep(0.10, 0.24, pixel.y / size.y);  // what has gone up fades
    ink = vec4(min(vec3(1.0), color * light), above * min(1.0, 8.0 * (time - letter.y) + 0.25));
    gl_Position = vec4(pixel.x / size.x * 2.0 - 1.0, 1.0 - pixel.y / size.y * 2.0, 0.0, 1.0);
}
