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

// Count is a number of things for people, such as "1 record" and "2 records"; one is the noun for one of them, which takes an s for more.
func Count[N int | int64](n N, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
