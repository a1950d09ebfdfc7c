"""A figure as SVG: boxes, arrows and lines of text, with a light and a dark appearance of its own. Knows no figure.

A figure is 720 units wide, or less, and is shown at most that large. Its text is 15 or 17 units high, so that it can be read on a telephone, too.
Text between backticks is set as code.
"""

from xml.sax.saxutils import escape

WIDTH = 720

# Name: the declarations of the light appearance, and those of the dark one.
COLORS = {
    ".ground": ("fill: #ffffff; stroke: #d0d7de", "fill: #0d1117; stroke: #3d444d"),
    ".box": ("fill: #f6f8fa; stroke: #8c959f", "fill: #1c2128; stroke: #768390"),
    ".frame": ("fill: none; stroke: #8c959f", "fill: none; stroke: #768390"),
    ".blue": ("fill: #ddf4ff; stroke: #0969da", "fill: #12304f; stroke: #58a6ff"),
    ".green": ("fill: #dafbe1; stroke: #1a7f37", "fill: #12351f; stroke: #3fb950"),
    ".yellow": ("fill: #fff8c5; stroke: #9a6700", "fill: #3a2d0b; stroke: #d29922"),
    ".anti": ("fill: #fff1e5; stroke: #bc4c00", "fill: #3d2007; stroke: #f0883e"),
    ".bar": ("fill: #0969da", "fill: #58a6ff"),
    ".other": ("fill: #8c959f", "fill: #768390"),
    ".line": ("stroke: #57606a", "stroke: #adbac7"),
    ".lost": ("stroke: #cf222e", "stroke: #ff7b72"),
    ".head": ("fill: #57606a", "fill: #adbac7"),
    "text": ("fill: #1f2328", "fill: #e6edf3"),
    ".soft": ("fill: #57606a", "fill: #adbac7"),
    ".red": ("fill: #cf222e", "fill: #ff7b72"),
    ".on": ("fill: #ffffff", "fill: #0d1117"),
}

SHAPES = """
text { font: 15px system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
.name { font-size: 17px; font-weight: 600; }
.code { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace; font-size: 0.92em; }
.line, .lost { fill: none; stroke-width: 1.5; }
.dashed { stroke-dasharray: 6 4; }
"""


def number(value):
    """A coordinate with one digit behind the point, if it needs one."""
    return f"{value:.1f}".removesuffix(".0")


class Figure:
    def __init__(self, height, title, description, width=WIDTH):
        self.width = width
        self.height = height
        self.title = title
        self.description = description
        self.parts = []

    def add(self, element):
        self.parts.append(element)

    def rect(self, x, y, width, height, kind="box", radius=6):
        self.add(
            f'<rect class="{kind}" x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}" rx="{radius}"/>'
        )

    def text(self, x, y, line, kind="", anchor="middle"):
        spans = []
        for index, part in enumerate(line.split("`")):
            if part:
                part = escape(part)
                spans.append(f'<tspan class="code">{part}</tspan>' if index % 2 else part)
        kind = f' class="{kind}"' if kind else ""
        self.add(f'<text{kind} x="{number(x)}" y="{number(y)}" text-anchor="{anchor}" xml:space="preserve">{"".join(spans)}</text>')

    def lines(self, x, y, lines, kind="", anchor="middle", leading=20):
        for index, line in enumerate(lines):
            self.text(x, y + index * leading, line, kind, anchor)

    def box(self, x, y, width, height, name, notes=(), kind="box"):
        """A rectangle with a name and notes in its middle."""
        self.rect(x, y, width, height, kind)
        lines = [(name, "name", 22)] if name else []
        lines += [(note, "", 20) for note in notes]
        total = sum(leading for _, _, leading in lines)
        place = y + (height - total) / 2 - 5
        for line, style, leading in lines:
            place += leading
            self.text(x + width / 2, place, line, style)

    def stack(self, x, y, width, layers):
        """Boxes of one line each, one below the other."""
        for index, layer in enumerate(layers):
            self.box(x, y + index * 40, width, 34, None, [layer])

    def arrow(self, x1, y1, x2, y2, kind="line", **style):
        """A straight arrow."""
        self.path([(x1, y1), (x2, y2)], kind, **style)

    def path(self, points, kind="line", dashed=False, both=False, head=True):
        """An arrow along the points."""
        style = f"{kind} dashed" if dashed else kind
        steps = "L".join(f"{number(x)} {number(y)}" for x, y in points)
        self.add(f'<path class="{style}" d="M{steps}"/>')
        if head:
            self.head(*points[-2:])
        if both:
            self.head(points[1], points[0])

    def head(self, start, end):
        """The head of an arrow from the start, at its end."""
        (x1, y1), (x, y) = start, end
        length = ((x - x1) ** 2 + (y - y1) ** 2) ** 0.5
        dx, dy = (x - x1) / length, (y - y1) / length
        left = (x - 9 * dx - 4.5 * dy, y - 9 * dy + 4.5 * dx)
        right = (x - 9 * dx + 4.5 * dy, y - 9 * dy - 4.5 * dx)
        corners = "L".join(f"{number(a)} {number(b)}" for a, b in [(x, y), left, right])
        self.add(f'<path class="head" d="M{corners}Z"/>')

    def cross(self, x, y):
        self.add(f'<path class="lost" d="M{number(x - 7)} {number(y - 7)}l14 14m0 -14l-14 14"/>')

    def step(self, x, y, digit):
        """The number of a step, in a disk."""
        self.add(f'<circle class="bar" cx="{number(x)}" cy="{number(y)}" r="11"/>')
        self.text(x, y + 5, digit, "on")

    def svg(self):
        light = "".join(f"{name} {{ {style}; }}\n" for name, (style, _) in COLORS.items())
        dark = "".join(f"  {name} {{ {style}; }}\n" for name, (_, style) in COLORS.items())
        style = f"{SHAPES.lstrip()}{light}@media (prefers-color-scheme: dark) {{\n{dark}}}"
        ground = f'<rect class="ground" x="0.5" y="0.5" width="{self.width - 1}" height="{self.height - 1}" rx="8"/>'
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" height="{self.height}" viewBox="0 0 {self.width} {self.height}" '
            'role="img" aria-labelledby="title description">',
            f'<title id="title">{escape(self.title)}</title>',
            f'<desc id="description">{escape(self.description)}</desc>',
            f"<style>\n{style}\n</style>",
            ground,
            *self.parts,
            "</svg>",
        ]
        return "\n".join(parts) + "\n"
