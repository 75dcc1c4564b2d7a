#version $version
// One fragment is one pixel of the caller's texture or framebuffer. The body defines vec4 color(ivec2 pixel).
$declarations
$math
$functions
$body
void main() { O_color = color(ivec2(gl_FragCoord.xy)); }
