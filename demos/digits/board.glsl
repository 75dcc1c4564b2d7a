#version 330
// The sheet, the layers and the answer. Each texture's top is in its first row.
uniform sampler2D ink;
uniform sampler2D edges;
uniform sampler2D parts;
uniform sampler2D shapes;
uniform sampler2D probabilities;
uniform vec4 ink_at;  // left, top, width, height, in pixels from the top left corner
uniform vec4 edges_at;
uniform vec4 parts_at;
uniform vec4 shapes_at;
uniform vec4 probabilities_at;
uniform vec2 edges_tiles;  // columns and rows
uniform vec2 parts_tiles;
uniform vec2 shapes_tiles;
uniform vec2 size;
out vec4 color;

const vec3 PAPER = vec3(0.965, 0.955, 0.93), INK = vec3(0.10, 0.12, 0.22);

bool within(vec2 at) { return all(greaterThanEqual(at, vec2(0.0))) && all(lessThan(at, vec2(1.0))); }

vec3 glow(float x) {  // night, violet, orange, light
    vec3 low = mix(vec3(0.055, 0.06, 0.12), vec3(0.38, 0.16, 0.55), smoothstep(0.0, 0.4, x));
    return mix(mix(low, vec3(0.97, 0.48, 0.24), smoothstep(0.3, 0.7, x)), vec3(1.0, 0.95, 0.72), smoothstep(0.65, 1.0, x));
}

vec3 layer(sampler2D mosaic, vec2 at, vec2 tiles, vec2 pixels, vec3 ground) {
    vec2 inside = fract(at * tiles) * pixels / tiles;
    if (any(lessThan(inside, vec2(1.5))) || any(greaterThan(inside, pixels / tiles - 1.5))) return ground;
    return glow(texture(mosaic, at).r);
}

void main() {
    vec2 place = vec2(gl_FragCoord.x, size.y - gl_FragCoord.y);
    vec3 shown = mix(vec3(0.125, 0.14, 0.21), vec3(0.085, 0.095, 0.15), place.y / size.y);
    vec2 at = (place - ink_at.xy) / ink_at.zw;
    if (within(at)) {
        vec2 inside = abs(fract(at * 28.0) - 0.5);
        shown = mix(PAPER * (1.0 - 0.03 * step(0.47, max(inside.x, inside.y))), INK, texture(ink, at).r);
    }
    at = (place - edges_at.xy) / edges_at.zw;
    if (within(at)) shown = layer(edges, at, edges_tiles, edges_at.zw, shown);
    at = (place - parts_at.xy) / parts_at.zw;
    if (within(at)) shown = layer(parts, at, parts_tiles, parts_at.zw, shown);
    at = (place - shapes_at.xy) / shapes_at.zw;
    if (within(at)) shown = layer(shapes, at, shapes_tiles, shapes_at.zw, shown);
    at = (place - probabilities_at.xy) / probabilities_at.zw;
    if (within(at) && abs(fract(at.x * 10.0) - 0.5) < 0.36) {
        float likely = texture(probabilities, vec2(at.x, 0.5)).r;
        shown = 1.0 - at.y < max(likely, 0.012) ? glow(0.25 + 0.7 * likely) : shown * 1.25;
    }
    color = vec4(shown, 1.0);
}
