#version 330
// Painted patterns under a sun, with a soft shade on the floor below each thing and haze in the distance.
uniform vec3 eye;
uniform vec3 color;
uniform int pattern;
in vec3 world;
in vec3 facing;
in vec2 at;
out vec4 shown;

float stripes(float x) { return step(0.5, fract(x)); }

vec3 painted() {
    vec3 light = mix(color, vec3(1.0), 0.75), dark = color * 0.45;
    if (pattern == 0) {  // tiles with joints and veins
        vec2 tile = fract(at * 1.25);
        float joint = step(0.03, min(tile.x, tile.y)) * step(max(tile.x, tile.y), 0.97);
        float checks = mod(dot(floor(at * 1.25), vec2(1.0)), 2.0);
        float veins = 0.06 * sin(at.x * 9.0 + 3.0 * sin(at.y * 7.0)) * sin(at.y * 11.0);
        return mix(vec3(0.36, 0.35, 0.36), mix(color, color * vec3(0.58, 0.66, 0.74), checks) + veins, joint);
    }
    if (pattern == 1) return mix(color, light, stripes(at.x * 18.0 + at.y * 6.0));
    if (pattern == 2) return mix(color, dark, mod(floor(at.x * 20.0) + floor(at.y * 10.0), 2.0));
    if (pattern == 3) {  // dots
        vec2 dotted = fract(at * vec2(12.0, 6.0)) - 0.5;
        return mix(light, color, step(0.30, length(dotted)));
    }
    float rings = stripes(at.y * 9.0 + 0.12 * sin(at.x * 60.0));
    return mix(dark, mix(color, light, step(0.8, fract(at.x * 40.0))), rings);
}

void main() {
    vec3 n = normalize(facing), sun = normalize(vec3(0.5, 0.9, 0.35)), to_eye = normalize(eye - world);
    float lit = max(dot(n, sun), 0.0);
    float gleam = pattern == 0 ? 0.0 : pow(max(dot(n, normalize(sun + to_eye)), 0.0), 48.0);
    vec3 light = painted() * (vec3(0.34, 0.37, 0.44) + vec3(0.95, 0.88, 0.76) * lit) + 0.55 * gleam;
    if (pattern == 0) light *= 1.0 - 0.38 * exp(-0.16 * dot(world.xz, world.xz));
    float haze = smoothstep(6.0, 17.0, length(world.xz));
    shown = vec4(pow(mix(light, vec3(0.27, 0.42, 0.65), haze), vec3(1.0 / 1.7)), 1.0);
}
