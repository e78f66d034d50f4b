package imagefilter

// For tests.
const (
	HasLossyWebP    = hasLossyWebP
	WarningLossless = warningLossless
)
