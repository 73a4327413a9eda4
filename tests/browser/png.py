"""PNG files that are small enough for a repository: 64 colours, one byte for each pixel."""

import base64
import struct
import zlib

from playwright.sync_api import Browser

SIGNATURE = b"\x89PNG\r\n\x1a\n"
# The letters of a page are drawn in thousands of shades. The most frequent 64 colours stay, and each
# other pixel gets the nearest of them.
READ_PIXELS = """async (address) => {
  const picture = new Image();
  picture.src = address;
  await picture.decode();
  const canvas = new OffscreenCanvas(picture.width, picture.height);
  const context = canvas.getContext("2d");
  context.drawImage(picture, 0, 0);
  const { data } = context.getImageData(0, 0, picture.width, picture.height);
  const counts = new Map();
  const pixels = new Uint32Array(data.length / 4);
  for (let at = 0; at < pixels.length; at += 1) {
    pixels[at] = (data[4 * at] << 16) | (data[4 * at + 1] << 8) | data[4 * at + 2];
    counts.set(pixels[at], (counts.get(pixels[at]) ?? 0) + 1);
  }
  const byCount = [...counts].sort((one, other) => other[1] - one[1]);
  const palette = byCount.slice(0, 64).map(([colour]) => colour);
  const shades = (colour) => [colour >> 16, (colour >> 8) & 255, colour & 255];
  const distance = (one, other) => Math.hypot(...shades(one).map((shade, at) => shade - shades(other)[at]));
  const nearest = (colour) => palette.reduce((best, each, at) =>
    distance(each, colour) < distance(palette[best], colour) ? at : best, 0);
  const numbers = new Map([...counts.keys()].map((colour) => [colour, nearest(colour)]));
  const bytes = Uint8Array.from(pixels, (colour) => numbers.get(colour));
  return { width: picture.width, height: picture.height, palette, pixels: bytes.toBase64() };
}"""


def smaller(browser: Browser, png: bytes) -> bytes:
    """The picture with at most 64 colours. The browser reads its pixels."""
    page = browser.new_page()
    address = f"data:image/png;base64,{base64.b64encode(png).decode()}"
    read = page.evaluate(READ_PIXELS, address)
    page.close()
    width = read["width"]
    height = read["height"]
    pixels = base64.b64decode(read["pixels"])
    # Each line begins with 0: its bytes are the pixels themselves.
    lines = b"".join(b"\0" + pixels[at : at + width] for at in range(0, len(pixels), width))
    palette = b"".join(colour.to_bytes(3) for colour in read["palette"])
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"PLTE", palette), (b"IDAT", zlib.compress(lines, 9))]
    return SIGNATURE + b"".join(_chunk(*each) for each in [*chunks, (b"IEND", b"")])


def _chunk(name: bytes, content: bytes) -> bytes:
    return (
        struct.pack(">I", len(content))
        + name
        + content
        + struct.pack(">I", zlib.crc32(name + content))
    )
