// Brightness between sRGB's curve and linear light: 1 makes it linear, 2 makes it sRGB, 0 leaves it alone.
float converted(float x, int conversion) {
    if (conversion == 1) return x <= 0.04045 ? x / 12.92 : pow((x + 0.055) / 1.055, 2.4);
    if (conversion == 2) return x <= 0.0031308 ? x * 12.92 : 1.055 * pow(x, 1.0 / 2.4) - 0.055;
    return x;
}
