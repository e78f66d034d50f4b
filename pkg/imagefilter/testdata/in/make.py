#!/usr/bin/env python3
"""Writes the pictures of this folder anew (Pillow, and vips for what Pillow can't write): one motif in every kind of file."""

import os
import subprocess

from PIL import Image, ImageChops, ImageDraw, TiffImagePlugin

os.chdir(os.path.dirname(os.path.abspath(__file__)))
WIDTH, HEIGHT = 64, 48


def motif():
    img = Image.new("RGB", (WIDTH, HEIGHT))
    for y in range(HEIGHT):
        for x in range(WIDTH):
            img.putpixel((x, y), (255 * x // WIDTH, 255 * y // HEIGHT, 128))
    draw = ImageDraw.Draw(img)
    draw.rectangle((0, 0, 11, 9), fill=(255, 0, 0))
    draw.ellipse((22, 12, 46, 36), fill=(250, 210, 40))
    draw.line((2, 45, 61, 40), fill=(255, 255, 255), width=2)
    return img


def faded(img):
    alpha = Image.new("L", img.size)
    alpha.putdata([max(0, min(255, 500 - 6 * (x + y))) for y in range(HEIGHT) for x in range(WIDTH)])
    img = img.copy()
    img.putalpha(alpha)
    return img


def exif(orientation):
    data = Image.Exif()
    data[0x0112] = orientation
    return data.tobytes()


def vips(name, command, *options):
    rgb.save("motif.tmp.png")
    subprocess.run(["vips", command, "motif.tmp.png", name, *options], check=True)
    os.remove("motif.tmp.png")


def ycck():
    """A CMYK JPEG whose channels are Y, Cb, Cr and K, and whose Adobe marker says so."""
    y, cb, cr = ImageChops.invert(rgb).convert("YCbCr").split()
    black = Image.new("L", rgb.size, 255)
    name = "ycck.jpg"
    Image.merge("CMYK", [c.point(lambda v: 255 - v) for c in (y, cb, cr, black)]).save(name, quality=90)
    with open(name, "rb") as f:
        data = bytearray(f.read())
    at = data.index(b"Adobe") + 11
    assert data[at] in (0, 2)
    data[at] = 2
    with open(name, "wb") as f:
        f.write(data)


rgb = motif()
gray, alpha = rgb.convert("L"), faded(rgb)
palette = rgb.quantize(64, dither=Image.Dither.NONE)
turned = rgb.transpose(Image.Transpose.ROTATE_90)  # which orientation 6 brings back
frames = [Image.new("RGB", rgb.size, c) for c in ("red", "green", "blue")]

for name, options in {
    "444.jpg": {"subsampling": 0}, "422.jpg": {"subsampling": 1}, "420.jpg": {"subsampling": 2},
    "progressive.jpg": {"progressive": True}, "rgb.jpg": {"keep_rgb": True},
}.items():
    rgb.save(name, quality=90, **options)
gray.save("gray.jpg", quality=90)
rgb.convert("CMYK").save("cmyk.jpg", quality=90)
ycck()

rgb.save("rgb.png")
gray.save("gray.png")
gray.convert("LA").save("grayalpha.png")
gray.save("graytransparent.png", transparency=255)
gray.point(lambda v: v * 257, "I").convert("I;16").save("gray16.png")
rgb.convert("1").save("bits.png")
alpha.save("alpha.png")
palette.save("palette.png")
palette.save("palettetransparent.png", transparency=palette.getpixel((5, 5)))
vips("interlaced.png", "pngsave", "--interlace")
vips("rgb16.png", "colourspace", "rgb16")

palette.save("palette.gif")
rgb.convert("P", palette=Image.Palette.ADAPTIVE).save("animated.gif", save_all=True, append_images=frames, loop=0)

rgb.save("rgb.bmp")
palette.save("palette.bmp")
alpha.save("alpha.bmp")

rgb.save("rgb.tiff")
rgb.save("lzw.tiff", compression="tiff_lzw")
alpha.save("deflate.tiff", compression="tiff_adobe_deflate")
gray.save("gray.tiff", compression="packbits")
palette.save("palette.tiff")
vips("tiles.tiff", "tiffsave", "--tile", "--tile-width", "16", "--tile-height", "16", "--compression", "deflate")

rgb.save("lossy.webp", quality=90)
rgb.save("lossless.webp", lossless=True)
alpha.save("lossyalpha.webp", quality=90)
alpha.save("losslessalpha.webp", lossless=True)

turned.save("turned.jpg", quality=90, subsampling=0, exif=exif(6))
turned.save("turned.png", exif=exif(6))
turned.save("turned.webp", lossless=True, exif=exif(6))
info = TiffImagePlugin.ImageFileDirectory_v2()
info[0x0112] = 6
turned.save("turned.tiff", tiffinfo=info)

os.makedirs("bad", exist_ok=True)
rgb.save("bad/animated.webp", save_all=True, append_images=frames, lossless=True)
rgb.save("bad/jpeg.tiff", compression="jpeg")
