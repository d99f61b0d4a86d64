"""`kubectl tidb status`: facts are read, a report is made of them, a page of that.

facts (requests) → report (pure; the document) → page (pure; 80 columns)
"""
