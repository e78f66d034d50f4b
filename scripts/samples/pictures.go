package main

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/jpeg"
	"image/png"
)

// picture is a record of a media library. The picture itself is drawn.
type picture struct {
	slug, title, alt string
	draw             func() image.Image // nil: vector is the picture
	lossless         bool               // PNG, for what has few colors; else JPEG
	vector           string             // SVG
}

// media is that record as the API takes it.
type media struct {
	Slug   string `json:"slug"`
	Title  string `json:"title"`
	Alt    string `json:"alt"`
	Credit string `json:"credit"`
	File   upload `json:"file"`
}

type upload struct {
	Src  string `json:"src"` // a data URL
	Path string `json:"path"`
}

// encoder gives the file of a picture, with its ending and media type.
type encoder func(p picture) (ending, kind string, data []byte)

// medialib gives the records of pictures, each with its file.
func medialib(pictures []picture, encode encoder) []any {
	var records []any
	for _, p := range pictures {
		ending, kind, data := encode(p)
		records = append(records, media{
			p.slug, p.title, p.alt, "Drawn for this project",
			upload{"data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(data), p.slug + ending},
		})
	}
	return records
}

// encodePicture draws.
func encodePicture(p picture) (ending, kind string, data []byte) {
	var b bytes.Buffer
	var err error
	switch {
	case p.draw == nil:
		return ".svg", "image/svg+xml", []byte(p.vector)
	case p.lossless:
		ending, kind = ".png", "image/png"
		err = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, p.draw())
	default:
		ending, kind = ".jpg", "image/jpeg"
		err = jpeg.Encode(&b, p.draw(), &jpeg.Options{Quality: 80})
	}
	if err != nil {
		panic(err) // a buffer takes everything, and a picture of ours can be encoded
	}
	return ending, kind, b.Bytes()
}
