// Package widget is what the screens of the terminal UI are made of: lists with sections, pages of text, bars, marked text,
// and how they look. It draws and moves, and knows nothing of the service.
//
// Start reading at List. All text that comes in is data, and made safe here (output.Escape), so that no screen can forget
// it; every line that goes out is as wide as it was asked to be, or narrower.
package widget
