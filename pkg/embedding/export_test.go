package embedding

// DecodeGolden says what is wrong with a golden file.
func DecodeGolden(raw []byte, sparse bool, dimensions int) error {
	_, err := decodeGolden(raw, sparse, dimensions)
	return err
}
