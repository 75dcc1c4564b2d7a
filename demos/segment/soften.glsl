#version 330
// What is behind people, multiplied by how much it is that: mipmaps of it leave people out.
uniform sampler2D picture;  // each texture's top is in its first row
uniform sampler2D mask;
out vec4 color;

void main() {
    vec2 at = gl_FragCoord.xy / vec2(320.0, 180.0);
    float behind = 1.0 - smoothstep(0.1, 0.5, texture(mask, at).r);
    color = vec4(texture(picture, at).rgb * behind, behind + 0.002);
}
