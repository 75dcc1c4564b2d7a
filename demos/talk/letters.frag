uniform sampler2D atlas;
in vec2 texel;
in vec4 ink;
out vec4 color;

void main() {
    float covered = texture(atlas, texel).r;
    float shade = 0.5 * textureLod(atlas, texel, 3.0).r;  // dark around it, for a bright sky
    float solid = max(covered, shade) * ink.a;
    color = vec4(ink.rgb * covered * ink.a, solid);
}
