load fileservr
run 10
