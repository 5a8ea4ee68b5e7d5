"""One file per reproduced table or figure: the document's setting in the simulator, its figures beside ours."""
