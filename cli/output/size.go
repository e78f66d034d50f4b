package output

import "fmt"

// Size is a number of bytes for people, such as "3.4 MiB".
func Size(n int64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	value, unit := float64(n)/(1<<10), "KiB"
	for _, larger := range []string{"MiB", "GiB", "TiB"} {
		if value < 1000 {
			break
		}
		value, unit = value/(1<<10), larger
	}
	return fmt.Sprintf("%.1f %s", value, unit)
}
