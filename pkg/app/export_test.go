package app

// For tests.
var (
	CacheFor    = cacheFor
	MemTableFor = memTableFor
	Memory      = memory
)
