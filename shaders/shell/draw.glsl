#version $version
// One fragment a pixel of the caller's texture or framebuffer; the body defines vec4 color(ivec2 pixel).
$declarations
$math
$functions
$body
void main() { O_color = color(ivec2(gl_FragCoord.xy)); }
