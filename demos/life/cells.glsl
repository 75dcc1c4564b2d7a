#version 330
// Cells as round drops that throw a soft shadow on a meadow with a faint grid.
uniform sampler2D picture;  // a texel is a cell, the top in the first row; colours are multiplied by alpha
uniform vec2 size;          // of all that is drawn into, in pixels
uniform vec2 cells;         // how many there are
out vec4 color;

void main() {
    vec2 at = vec2(gl_FragCoord.x, size.y - gl_FragCoord.y) / size;
    vec2 place = at * cells;
    vec4 cell = texelFetch(picture, ivec2(place), 0);
    vec2 inside = fract(place) - 0.5;
    float pixel = cells.y / size.y;
    float radius = 0.5 * sqrt(clamp(cell.a, 0.0, 1.0));
    float corner = length(max(abs(inside) - radius * 0.55, 0.0)) - radius * 0.42;
    float covered = clamp(0.5 - corner / pixel, 0.0, 1.0) * step(0.02, cell.a);
    vec2 middle = at - 0.5;
    vec3 ground = mix(vec3(0.90, 0.94, 0.84), vec3(0.66, 0.77, 0.66), smoothstep(0.0, 0.75, length(middle)));
    ground *= 1.0 - 0.03 * smoothstep(0.38, 0.5, max(abs(inside.x), abs(inside.y)));
    float shadow = 0.0;
    for (int y = -3; y <= 3; y++)
        for (int x = -3; x <= 3; x++)
            shadow += texture(picture, (place - vec2(1.2, 1.6) + vec2(x, y)) / cells).a * exp(-0.15 * float(x * x + y * y));
    ground *= 1.0 - 0.35 * min(1.0, shadow / 17.0);
    vec3 shade = cell.rgb / max(cell.a, 0.05) * (1.12 - 0.3 * length(inside - vec2(-0.15, -0.15)));
    color = vec4(mix(ground, shade, covered), 1.0);
}
