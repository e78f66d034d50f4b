package main

import "image"

// stillSize is the width and height of pictures of products.
const stillSize = 900

// shopPictures are of one product of each of some kinds, and a drawing.
func shopPictures() []picture {
	still := func(slug, title, alt string, draw func() image.Image) picture {
		return picture{slug: slug, title: title, alt: alt, lossless: true, draw: draw}
	}
	return []picture{
		still("rain-shell", "Rain shell", "A green rain jacket with a hood and two pockets", rainShell),
		still("ridge-boot", "Ridge boot", "A brown hiking boot with a thick sole", ridgeBoot),
		still("day-pack", "Day pack", "A blue backpack with a front pocket", dayPack),
		still("duo-tent", "Duo tent", "An orange tent on a meadow, its door open", duoTent),
		still("kettle", "Kettle", "A kettle of steel with a wooden handle", kettle),
		still("pocket-knife", "Pocket knife", "A folding knife with a red handle, open", pocketKnife),
		{slug: "size-chart", title: "How we measure", alt: "A drawing that shows where chest, waist and inside leg are measured", vector: sizeChart},
	}
}

func onTable(wall, table uint32, edge, y, width float64, shapes ...*shape) image.Image {
	return still(stillSize, stillSize, hex(wall), hex(table), edge, 0.5, y, width, shapes)
}

func rainShell() image.Image {
	leaf, dark, light := hex(0x4f8064), hex(0x35604a), hex(0x6d9c7f)
	return onTable(0xe8e4d8, 0xe8e4d8, 2, 0.9, 0.33,
		&shape{color: dark, path: smooth(0.4, 0.24, 0.42, 0.12, 0.5, 0.08, 0.58, 0.12, 0.6, 0.24, 0.5, 0.29)},
		&shape{color: hex(0x24463a), path: smooth(0.44, 0.23, 0.45, 0.15, 0.5, 0.125, 0.55, 0.15, 0.56, 0.23, 0.5, 0.255)},
		&shape{color: dark, foot: hex(0x2d523f), path: smooth(0.37, 0.24, 0.25, 0.31, 0.15, 0.62, 0.14, 0.72, 0.22, 0.735, 0.27, 0.6, 0.35, 0.4)},
		&shape{color: dark, foot: hex(0x2d523f), path: smooth(0.63, 0.24, 0.75, 0.31, 0.85, 0.62, 0.86, 0.72, 0.78, 0.735, 0.73, 0.6, 0.65, 0.4)},
		&shape{color: leaf, foot: hex(0x3f6b53), path: points(0.34, 0.235, 0.42, 0.21, 0.5, 0.25, 0.58, 0.21, 0.66, 0.235, 0.7, 0.32, 0.71, 0.84, 0.6, 0.865, 0.5, 0.87, 0.4, 0.865, 0.29, 0.84, 0.3, 0.32)},
		&shape{color: light, path: points(0.3, 0.33, 0.5, 0.37, 0.7, 0.33, 0.7, 0.345, 0.5, 0.385, 0.3, 0.345)},
		&shape{color: hex(0x24463a), path: points(0.494, 0.25, 0.506, 0.25, 0.506, 0.869, 0.494, 0.869)},
		&shape{color: hex(0xe9b44c), path: points(0.49, 0.3, 0.51, 0.3, 0.51, 0.345, 0.49, 0.345)},
		&shape{color: dark, path: stroke(0.012, 0.35, 0.6, 0.43, 0.66)}, &shape{color: dark, path: stroke(0.012, 0.65, 0.6, 0.57, 0.66)},
	)
}

func ridgeBoot() image.Image {
	hide, dark := hex(0x8c5a34), hex(0x5f3b22)
	shapes := []*shape{
		{color: hide, foot: hex(0x6f4628), path: smooth(0.3, 0.18, 0.42, 0.16, 0.52, 0.18, 0.53, 0.38, 0.6, 0.5, 0.74, 0.58, 0.84, 0.66, 0.85, 0.76, 0.55, 0.78, 0.28, 0.77, 0.26, 0.6, 0.29, 0.4)},
		{color: dark, path: smooth(0.68, 0.56, 0.78, 0.6, 0.855, 0.67, 0.86, 0.76, 0.74, 0.765, 0.73, 0.66)},
		{color: dark, path: smooth(0.265, 0.6, 0.35, 0.57, 0.41, 0.66, 0.4, 0.77, 0.27, 0.77)},
		{color: hex(0x3f4a46), path: smooth(0.29, 0.16, 0.41, 0.14, 0.535, 0.165, 0.53, 0.22, 0.41, 0.205, 0.295, 0.225)},
		{color: hex(0x2d2a28), path: points(0.245, 0.765, 0.87, 0.765, 0.885, 0.8, 0.87, 0.835, 0.84, 0.85, 0.25, 0.85, 0.24, 0.8)},
		{color: hex(0xd8c9a8), path: points(0.247, 0.762, 0.868, 0.762, 0.874, 0.778, 0.245, 0.778)},
	}
	for i := range 9 {
		x := 0.27 + float64(i)*0.068
		shapes = append(shapes, &shape{color: hex(0xd8dde0), path: points(x, 0.836, x+0.026, 0.836, x+0.02, 0.85, x+0.006, 0.85)})
	}
	for i := range 5 {
		x, y := 0.445+0.012*float64(i)+0.014*float64(i*i)/2, 0.27+0.065*float64(i)
		shapes = append(shapes, &shape{color: hex(0xd9b27c), path: stroke(0.014, x, y, x+0.085, y-0.012)},
			&shape{color: hex(0x3a2616), path: oval(x, y, 0.012, 0.012)})
	}
	return onTable(0xd8dde0, 0xc3cacd, 0.72, 0.86, 0.42, shapes...)
}

func dayPack() image.Image {
	blue, dark, light := hex(0x3f6791), hex(0x2c4a6b), hex(0x5681ad)
	return onTable(0xf0e6d6, 0xdccfb9, 0.78, 0.9, 0.34,
		&shape{color: dark, path: arc(0.026, 0.5, 0.14, 0.075, 0.06, 0.5, 1)},
		&shape{color: dark, path: arc(0.045, 0.31, 0.5, 0.11, 0.28, 0.2, 0.8)}, &shape{color: dark, path: arc(0.045, 0.69, 0.5, 0.11, 0.28, -0.3, 0.3)},
		&shape{color: blue, foot: hex(0x345980), path: smooth(0.28, 0.3, 0.31, 0.18, 0.5, 0.12, 0.69, 0.18, 0.72, 0.3, 0.735, 0.6, 0.72, 0.84, 0.5, 0.885, 0.28, 0.84, 0.265, 0.6)},
		&shape{color: light, foot: blue, path: smooth(0.275, 0.33, 0.31, 0.175, 0.5, 0.115, 0.69, 0.175, 0.725, 0.33, 0.6, 0.375, 0.5, 0.385, 0.4, 0.375)},
		&shape{color: dark, foot: hex(0x243d59), path: smooth(0.34, 0.53, 0.5, 0.515, 0.66, 0.53, 0.675, 0.68, 0.65, 0.81, 0.5, 0.835, 0.35, 0.81, 0.325, 0.68)},
		&shape{color: hex(0xe9b44c), path: stroke(0.012, 0.36, 0.56, 0.5, 0.548, 0.64, 0.56)},
		&shape{color: hex(0x2d2a28), path: points(0.472, 0.36, 0.528, 0.36, 0.528, 0.47, 0.472, 0.47)},
		&shape{color: hex(0xc9ced1), path: points(0.462, 0.42, 0.538, 0.42, 0.538, 0.455, 0.462, 0.455)},
	)
}

func duoTent() image.Image {
	return onTable(0xbcd6df, 0x8fae6b, 0.7, 0.82, 0.46,
		&shape{color: hex(0xfff3c9), path: oval(0.8, 0.18, 0.07, 0.07)},
		&shape{color: hex(0x7d9c8b), path: smooth(-0.1, 0.71, 0.15, 0.55, 0.35, 0.62, 0.6, 0.5, 0.85, 0.6, 1.1, 0.56, 1.1, 0.71)},
		&shape{color: hex(0x8fae6b), foot: hex(0x6e8f4e), path: points(-0.1, 0.7, 1.1, 0.7, 1.1, 1.1, -0.1, 1.1)},
		&shape{color: hex(0x4e6b38), path: points(0.08, 0.83, 0.5, 0.8, 0.93, 0.83, 0.93, 0.85, 0.5, 0.88, 0.08, 0.85)},
		&shape{color: hex(0x5b4a33), path: stroke(0.006, 0.43, 0.33, 0.05, 0.83)}, &shape{color: hex(0x5b4a33), path: stroke(0.006, 0.66, 0.33, 0.97, 0.8)},
		&shape{color: hex(0xc96f2e), foot: hex(0xa9561f), path: points(0.43, 0.32, 0.66, 0.32, 0.89, 0.8, 0.69, 0.83)},
		&shape{color: hex(0xe98a3c), foot: hex(0xd1732a), path: points(0.43, 0.32, 0.69, 0.83, 0.14, 0.83)},
		&shape{color: hex(0x5a2f17), foot: hex(0x3a1e10), path: points(0.43, 0.4, 0.56, 0.83, 0.31, 0.83)},
		&shape{color: hex(0xf3b06f), path: smooth(0.43, 0.4, 0.37, 0.55, 0.335, 0.7, 0.31, 0.83, 0.27, 0.82, 0.33, 0.62)},
		&shape{color: hex(0xf0e6d6), path: stroke(0.008, 0.43, 0.322, 0.66, 0.322)},
	)
}

func kettle() image.Image {
	steel, dark := hex(0xaeb9bf), hex(0x6f7c84)
	return onTable(0xe9d9c2, 0xb98a5b, 0.74, 0.84, 0.4,
		&shape{color: hex(0x3a3f42), path: arc(0.022, 0.49, 0.46, 0.2, 0.3, 0.49, 1.01)},
		&shape{color: hex(0x8a5a34), path: arc(0.05, 0.49, 0.46, 0.2, 0.3, 0.66, 0.84)},
		&shape{color: dark, foot: hex(0x8d989e), path: smooth(0.66, 0.66, 0.78, 0.56, 0.83, 0.44, 0.89, 0.43, 0.87, 0.5, 0.8, 0.66, 0.68, 0.78)},
		&shape{color: steel, foot: dark, path: smooth(0.27, 0.48, 0.36, 0.42, 0.49, 0.4, 0.62, 0.42, 0.71, 0.48, 0.75, 0.66, 0.72, 0.82, 0.49, 0.845, 0.26, 0.82, 0.23, 0.66)},
		&shape{color: hex(0xd9e0e4), foot: steel, path: smooth(0.31, 0.53, 0.36, 0.49, 0.38, 0.5, 0.34, 0.6, 0.32, 0.74, 0.285, 0.72, 0.285, 0.62)},
		&shape{color: hex(0xc6cfd4), foot: hex(0x939fa6), path: smooth(0.36, 0.42, 0.42, 0.37, 0.49, 0.36, 0.56, 0.37, 0.62, 0.42, 0.49, 0.435)},
		&shape{color: hex(0x8a5a34), foot: hex(0x63401f), path: oval(0.49, 0.335, 0.036, 0.032)},
		&shape{color: hex(0x59646a), path: smooth(0.25, 0.8, 0.49, 0.83, 0.73, 0.8, 0.715, 0.828, 0.49, 0.852, 0.265, 0.828)},
	)
}

func pocketKnife() image.Image {
	return onTable(0x9fb0a6, 0x9fb0a6, 2, 0.76, 0.42,
		&shape{color: hex(0xe6eaec), foot: hex(0xa7b1b7), path: points(0.5, 0.52, 0.58, 0.44, 0.72, 0.31, 0.83, 0.22, 0.9, 0.18, 0.89, 0.25, 0.83, 0.35, 0.72, 0.47, 0.6, 0.58)},
		&shape{color: hex(0xc4cdd2), path: points(0.57, 0.535, 0.71, 0.41, 0.82, 0.3, 0.89, 0.22, 0.89, 0.25, 0.83, 0.35, 0.72, 0.47, 0.6, 0.58)},
		&shape{color: hex(0x7d878d), path: stroke(0.01, 0.64, 0.42, 0.73, 0.335)},
		&shape{color: hex(0x7a2320), path: smooth(0.17, 0.74, 0.2, 0.69, 0.36, 0.57, 0.5, 0.49, 0.57, 0.49, 0.61, 0.55, 0.58, 0.62, 0.42, 0.74, 0.27, 0.83, 0.2, 0.82)},
		&shape{color: hex(0xb63a35), foot: hex(0x93302c), path: smooth(0.19, 0.735, 0.215, 0.7, 0.36, 0.59, 0.5, 0.51, 0.56, 0.51, 0.59, 0.55, 0.565, 0.605, 0.41, 0.72, 0.27, 0.81, 0.21, 0.8)},
		&shape{color: hex(0xd9dfe2), path: oval(0.535, 0.56, 0.02, 0.02)}, &shape{color: hex(0xd9dfe2), path: oval(0.26, 0.755, 0.016, 0.016)},
		&shape{color: hex(0xd9dfe2), path: stroke(0.016, 0.34, 0.7, 0.44, 0.625)},
	)
}

const sizeChart = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 400 520" role="img" aria-label="How we measure">
  <rect width="400" height="520" fill="#e8e4d8"/>
  <g fill="#c9b79c"><circle cx="200" cy="70" r="38"/><path d="M184 104h32v26h-32z"/></g>
  <path d="M132 128h136l34 150-28 8-24-88-4 92H154l-4-92-24 88-28-8z" fill="#4f8064"/>
  <path d="M154 290h92l14 190h-44l-16-140-16 140h-44z" fill="#3a5568"/>
  <g stroke="#b23a34" stroke-width="3" stroke-dasharray="7 5" fill="none"><path d="M146 178h108M150 268h100M200 340v138"/></g>
  <g font-family="Georgia, serif" font-size="17" fill="#24312c"><text x="312" y="183">1 chest</text><text x="312" y="273">2 waist</text><text x="276" y="420">3 inside leg</text></g>
</svg>
`
