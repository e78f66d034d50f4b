package pipeline

// compileStage checks the operand of a stage. raw is what a server is sent for it.
type compileStage func(c *compiler, name string, spec any) (s stage, raw any, err error)

// lookUp finds a stage by its name; nil if it is not to be had.
func (c *compiler) lookUp(name string) compileStage {
	switch name {
	case "$match":
		return compileMatch
	case "$project":
		return compileProject
	case "$addFields", "$set":
		return compileAddFields
	case "$unset":
		return compileUnset
	case "$sort":
		return compileSort
	case "$limit":
		return compileLimit
	case "$skip":
		return compileSkip
	case "$unwind":
		return compileUnwind
	case "$count":
		return compileCount
	case "$replaceRoot":
		return compileReplaceRoot
	case "$replaceWith":
		return compileReplaceWith
	case "$sample":
		return compileSample
	case "$group":
		return compileGroup
	case "$sortByCount":
		return compileSortByCount
	case "$bucket":
		return compileBucket
	case "$bucketAuto":
		return compileBucketAuto
	case "$setWindowFields":
		return compileWindows
	case "$fill":
		return compileFill
	case "$graphLookup":
		return compileGraphLookup
	case "$lookup":
		return compileLookup
	case "$facet":
		return compileFacet
	case "$unionWith":
		return compileUnionWith
	default:
		return nil
	}
}
