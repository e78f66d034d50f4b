package media

// setLock is F_OFD_SETLK: the lock is that of an open file, so that two stores of one process are like two processes.
const setLock = 37
