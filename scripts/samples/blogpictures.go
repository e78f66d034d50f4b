package main

import "image"

// blogPictures are the covers of the magazine's articles: walking, cooking, mending, and a map.
func blogPictures() []picture {
	return []picture{
		{slug: "ridges-at-dawn", title: "Ridges at dawn", alt: "Blue ridges, one behind the other, in the haze of the early morning", draw: func() image.Image {
			return hills(11, sky{hex(0x5b7fa6), hex(0xb9c3d6), hex(0xf6d9b8), hex(0xfff3dc), 1.02, 0.36, 0.04, 0.16},
				ridges{7, 0.46, 0.96, 0.2, hex(0xa9b4cb), hex(0x1c3149), hex(0xe9dcd3), false})
		}},
		{slug: "firs-in-the-mist", title: "Firs in the mist", alt: "Fir trees on a slope, the farther ones pale in the mist", draw: func() image.Image {
			return hills(23, sky{hex(0xc9d5d3), hex(0xdde3dc), hex(0xebe9dd), hex(0xfdf9ea), 0.36, 0.2, 0.05, 0.2},
				ridges{6, 0.36, 0.88, 0.12, hex(0xb4c4bf), hex(0x14342e), hex(0xdfe5de), true})
		}},
		{slug: "harbor-in-the-evening", title: "The harbor in the evening", alt: "A sailing boat on calm water, the sun low behind it", draw: func() image.Image {
			return sea(31, sky{hex(0x3d4f7d), hex(0xd98a72), hex(0xf9c98a), hex(0xfff0c8), 0.82, 0.5, 0.05, 0.17}, hex(0x23345c))
		}},
		{slug: "hut-by-night", title: "A night at the hut", alt: "Stars and a full moon above dark hills and trees", draw: func() image.Image {
			return night(47, sky{hex(0x0a1230), hex(0x1d2f5c), hex(0x4a5f8c), hex(0xf7f3dc), 1.16, 0.19, 0.055, 0.06},
				ridges{5, 0.6, 0.94, 0.14, hex(0x34466f), hex(0x050a18), hex(0x43577f), true})
		}},
		{slug: "autumn-valley", title: "Autumn in the valley", alt: "Rolling hills in the colors of autumn under a low sun", draw: func() image.Image {
			return hills(59, sky{hex(0x86abc4), hex(0xd9dccb), hex(0xfbe7b5), hex(0xfffbe8), 0.3, 0.3, 0.035, 0.14},
				ridges{6, 0.5, 0.9, 0.13, hex(0xcfb994), hex(0x5e2f14), hex(0xf2d9a2), true})
		}},
		{slug: "rye-loaf", title: "A loaf of rye", alt: "A round loaf of bread with three cuts, on a wooden board", draw: ryeLoaf},
		{slug: "thread-and-buttons", title: "Thread and buttons", alt: "A spool of red thread, a needle and two buttons", draw: threadAndButtons},
		{slug: "map-of-the-walk", title: "The way around the lake", alt: "A sketched map: a lake, a wood, and a dotted path around both", vector: walkMap},
	}
}

func ryeLoaf() image.Image {
	crust, flour := hex(0x8a4f24), hex(0xf0dcb8)
	shapes := []*shape{
		{color: hex(0xb98450), foot: hex(0x8f5f36), path: smooth(0.2, 0.76, 0.75, 0.73, 1.3, 0.76, 1.32, 0.83, 0.75, 0.86, 0.18, 0.83)},
		{color: hex(0xc98a4b), foot: crust, path: smooth(0.33, 0.7, 0.36, 0.5, 0.52, 0.34, 0.75, 0.29, 0.98, 0.34, 1.14, 0.5, 1.17, 0.7, 1.0, 0.775, 0.75, 0.79, 0.5, 0.775)},
		{color: hex(0xdba668), foot: hex(0xb97b40), path: smooth(0.42, 0.52, 0.56, 0.38, 0.76, 0.33, 0.96, 0.39, 1.06, 0.5, 0.9, 0.46, 0.75, 0.45, 0.58, 0.47)},
	}
	for _, x := range []float64{0.56, 0.74, 0.92} {
		shapes = append(shapes, &shape{color: flour, foot: hex(0xd8b684), path: smooth(x-0.05, 0.64, x-0.03, 0.53, x+0.01, 0.44, x+0.06, 0.37, x+0.045, 0.46, x+0.02, 0.56, x-0.015, 0.65)})
	}
	return still(landscapeWidth, landscapeHeight, hex(0x5a6d63), hex(0x3d4a42), 0.62, 0.75, 0.86, 0.62, shapes)
}

func threadAndButtons() image.Image {
	wood, red := hex(0xd9b27c), hex(0xb23a34)
	shapes := []*shape{
		{color: red, foot: hex(0x8d2a28), path: points(0.42, 0.33, 0.72, 0.33, 0.74, 0.5, 0.72, 0.69, 0.42, 0.69, 0.4, 0.5)},
		{color: wood, foot: hex(0xb88d55), path: smooth(0.36, 0.27, 0.57, 0.24, 0.78, 0.27, 0.76, 0.34, 0.57, 0.35, 0.38, 0.34)},
		{color: wood, foot: hex(0xa77c48), path: smooth(0.36, 0.7, 0.57, 0.68, 0.78, 0.7, 0.78, 0.76, 0.57, 0.79, 0.36, 0.76)},
		{color: hex(0x7a5a34), path: oval(0.57, 0.275, 0.045, 0.014)},
	}
	for i := range 9 {
		y := 0.375 + float64(i)*0.035
		shapes = append(shapes, &shape{color: hex(0xc9564c), path: stroke(0.006, 0.412, y, 0.57, y+0.012, 0.73, y)})
	}
	shapes = append(shapes,
		&shape{color: red, path: smooth(0.72, 0.64, 0.8, 0.7, 0.9, 0.64, 1.0, 0.56, 1.12, 0.58, 1.118, 0.588, 1.0, 0.568, 0.9, 0.652, 0.8, 0.712, 0.716, 0.652)},
		&shape{color: hex(0xe3e6e8), foot: hex(0x9aa3a8), path: points(1.28, 0.34, 1.29, 0.345, 1.1, 0.612, 1.085, 0.632, 1.09, 0.608)},
		&shape{color: hex(0x4f6f87), path: oval(0.95, 0.79, 0.085, 0.06)}, &shape{color: hex(0x6f93ac), path: oval(0.95, 0.78, 0.085, 0.06)},
		&shape{color: hex(0x5b7d95), path: oval(0.95, 0.78, 0.062, 0.042)},
		&shape{color: hex(0xc7933c), path: oval(1.2, 0.735, 0.065, 0.046)}, &shape{color: hex(0xe2b660), path: oval(1.2, 0.727, 0.065, 0.046)},
		&shape{color: hex(0xcf9f49), path: oval(1.2, 0.727, 0.046, 0.031)},
	)
	for _, at := range [][2]float64{{0.95, 0.78}, {1.2, 0.727}} {
		for _, d := range [][2]float64{{-0.016, -0.01}, {0.016, -0.01}, {-0.016, 0.01}, {0.016, 0.01}} {
			shapes = append(shapes, &shape{color: hex(0x2e3a41), path: oval(at[0]+d[0], at[1]+d[1], 0.0075, 0.0055)})
		}
	}
	return still(landscapeWidth, landscapeHeight, hex(0xe9ddc9), hex(0xd3c0a4), 0.6, 0.62, 0.79, 0.34, shapes)
}

const walkMap = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 600 400" role="img" aria-label="The way around the lake">
  <rect width="600" height="400" fill="#f2e8cf"/>
  <path d="M0 310C90 270 150 340 240 330S420 280 600 330V400H0z" fill="#d9cfa8"/>
  <path d="M190 170c40-60 150-70 210-30s60 110 0 140-150 20-200-10-50-60-10-100z" fill="#8fb8c9" stroke="#5d8da3" stroke-width="3"/>
  <g fill="#2f5d50"><path d="m70 150 22-60 22 60z"/><path d="m104 170 22-66 22 66z"/><path d="m58 196 20-54 20 54z"/><path d="m120 220 18-50 18 50z"/></g>
  <path d="M60 330C140 300 130 240 165 180s150-120 260-80 90 160 20 220-200 30-300 20" fill="none" stroke="#b23a34" stroke-width="6" stroke-linecap="round" stroke-dasharray="1 14"/>
  <circle cx="60" cy="330" r="9" fill="#b23a34"/>
  <path d="m145 340-14-22h28z" fill="#24312c"/><rect x="134" y="340" width="22" height="18" fill="#e9b44c"/>
  <g font-family="Georgia, serif" font-size="20" fill="#24312c"><text x="262" y="215">The lake</text><text x="40" y="70">Mill Wood</text><text x="78" y="368">Bus</text></g>
</svg>
`
